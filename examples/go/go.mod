module quickstart

go 1.23

require github.com/linxGnu/grocksdb v1.11.1
