module bentpipe/stp-go

go 1.23
