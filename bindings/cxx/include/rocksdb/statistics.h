// Counters and histograms.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rocksdb/customizable.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

#include "rocksdb/fields/statistics.inc"

// Counters of RocksDB 6 that nothing counts any more: they are 0.
constexpr Tickers kNoTicker = static_cast<Tickers>(TICKER_ENUM_MAX + 1);
constexpr Tickers BLOCK_CACHE_INDEX_BYTES_EVICT = kNoTicker;
constexpr Tickers BLOCK_CACHE_FILTER_BYTES_EVICT = kNoTicker;
constexpr Tickers BLOCK_CACHE_COMPRESSED_MISS = kNoTicker;
constexpr Tickers BLOCK_CACHE_COMPRESSED_HIT = kNoTicker;
constexpr Tickers NO_FILE_CLOSES = kNoTicker;
constexpr Tickers NO_ITERATORS = kNoTicker;
constexpr Tickers NUMBER_FILTERED_DELETES = kNoTicker;
constexpr Tickers NUMBER_BLOCK_NOT_COMPRESSED = kNoTicker;
constexpr Tickers WRITE_TIMEDOUT = kNoTicker;

extern const std::vector<std::pair<Tickers, std::string>> TickersNameMap;
extern const std::vector<std::pair<Histograms, std::string>> HistogramsNameMap;

struct HistogramData {
  double median = 0.0;
  double percentile95 = 0.0;
  double percentile99 = 0.0;
  double average = 0.0;
  double standard_deviation = 0.0;
  double max = 0.0;
  uint64_t count = 0;
  uint64_t sum = 0;
  double min = 0.0;
};

enum StatsLevel : uint8_t {
  kDisableAll,
  kExceptTickers = kDisableAll,
  kExceptHistogramOrTimers,
  kExceptTimers,
  kExceptDetailedTimers,
  kExceptTimeForMutex,
  kAll,
};

class Statistics : public Customizable {
 public:
  ~Statistics() override;
  static const char* Type() { return "Statistics"; }
  const char* Name() const override { return "BasicStatistics"; }

  virtual uint64_t getTickerCount(uint32_t ticker) const = 0;
  virtual void histogramData(uint32_t histogram, HistogramData* const data) const = 0;
  virtual uint64_t getAndResetTickerCount(uint32_t ticker) = 0;
  virtual Status Reset() = 0;
  virtual std::string ToString() const = 0;
  virtual bool getTickerMap(std::map<std::string, uint64_t>* values) const = 0;
  virtual void set_stats_level(StatsLevel level) = 0;
  virtual StatsLevel get_stats_level() const = 0;
  // The object of the C interface; null for one of the application's own, which is refused.
  virtual void* EskerHandle() const { return nullptr; }
};

std::shared_ptr<Statistics> CreateDBStatistics();

}  // namespace ROCKSDB_NAMESPACE
