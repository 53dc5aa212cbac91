package yamltext

const (
	// maxDepth limits how deep collections nest, aliases included.
	maxDepth = 100
	// maxKey limits the bytes of a key.
	maxKey = 128
	// maxSize limits the bytes of a document whose aliases are expanded: a few lines of aliases of
	// aliases would fill the memory.
	maxSize = 4 << 20
)
