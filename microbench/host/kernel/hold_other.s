//go:build !amd64 && !arm64

// A package with functions that have no body needs an assembly file.
