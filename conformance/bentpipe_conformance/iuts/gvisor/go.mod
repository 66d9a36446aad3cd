module bentpipe/gvisor-responder

go 1.23.1

require gvisor.dev/gvisor v0.0.0-20250523182742-eede7a881b20

require (
	github.com/google/btree v1.1.2 // indirect
	golang.org/x/sys v0.26.0 // indirect
	golang.org/x/time v0.7.0 // indirect
)
