package procenv

// proxies are the names of variables of proxies, in capitals.
var proxies = []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "FTP_PROXY"}
