//! `esker bench` under the name that RocksDB's scripts call, with `db_bench`'s own directory by
//! default.
use std::process::ExitCode;

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    #[cfg(feature = "jemalloc")]
    esker::declare_allocator(esker::Allocator::Jemalloc);
    let args: Vec<String> = std::env::args().skip(1).collect();
    esker_lab::bench::db_bench(&args)
}
