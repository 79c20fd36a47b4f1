// Nothing: MyRocks uses RocksDB's test points in debug builds alone.
#pragma once
