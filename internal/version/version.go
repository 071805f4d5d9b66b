// Package version names this release; results and models carry it.
package version

// Version of the program. Runs of different versions are not joined.
const Version = "0.1.0"
