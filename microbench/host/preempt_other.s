//go:build !amd64 && !arm64

// Lets the package declare functions that the runtime has.
