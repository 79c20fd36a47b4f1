// Stands for an internal header of RocksDB that its C interface includes and does not use.
#pragma once
