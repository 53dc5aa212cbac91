package job

import "strings"

// usualNames are the variables that every job gets, as far as they are set.
var usualNames = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ"}

type scrubList struct {
	what                      string
	prefixes, suffixes, names []string
}

// scrubLists name the variables that must not reach a job by accident, in capitals.
var scrubLists = []scrubList{
	{what: "git", prefixes: []string{"GIT_"}},
	{
		what:     "it redirects programs",
		prefixes: strings.Fields("LD_ DYLD_ BUN_ SANDBOX_ OTEL_"),
		names: strings.Fields("NODE_OPTIONS NODE_EXTRA_CA_CERTS NODE_TLS_REJECT_UNAUTHORIZED SSL_CERT_FILE SSL_CERT_DIR PYTHONPATH BASH_ENV " +
			"ENV PROMPT_COMMAND SEATBELT_PROFILE TMUX STY"),
	},
	{
		what: "a provider or router",
		prefixes: strings.Fields("ANTHROPIC_ CLAUDE_ CLAUDECODE OPENAI_ CODEX_ CHATGPT_ GEMINI_ GOOGLE_ GCLOUD_ CLOUDSDK_ CLOUD_ML_ VERTEX_ CODE_ASSIST_ " +
			"AWS_ BEDROCK_ AZURE_ FOUNDRY_ OLLAMA_ LMSTUDIO_ LITELLM_ OPENROUTER_ MISTRAL_ GROQ_ XAI_ DEEPSEEK_ TOGETHER_ FIREWORKS_ COHERE_ PERPLEXITY_ " +
			"HF_ HUGGINGFACE_ REPLICATE_ NVIDIA_ CEREBRAS_ MOONSHOT_ DASHSCOPE_ ZAI_ KIMI_ QWEN_ GRPC_ GCE_METADATA_"),
	},
	{
		what:     "a secret",
		suffixes: strings.Fields("_API_KEY _APIKEY _AUTH_TOKEN _ACCESS_TOKEN _SECRET _SECRET_KEY _PASSWORD _CREDENTIALS _BASE_URL _CUSTOM_HEADERS"),
		names:    strings.Fields("GITHUB_TOKEN GH_TOKEN SSH_AUTH_SOCK DOTENV_KEY"),
	},
}
