module bentpipe/rwbp-go

go 1.23.1
