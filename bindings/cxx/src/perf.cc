// The figures that a thread keeps of itself.

#include "internal.h"
#include "rocksdb/iostats_context.h"
#include "rocksdb/perf_context.h"

namespace ROCKSDB_NAMESPACE {

namespace {

thread_local PerfLevel perf_level = kEnableCount;

// The object of the C interface, which stands for whatever thread asks.
rocksdb_perfcontext_t* Figures() {
  static rocksdb_perfcontext_t* const figures = rocksdb_perfcontext_create();
  return figures;
}

}  // namespace

void SetPerfLevel(PerfLevel level) {
  perf_level = level;
  // The C interface numbers its levels without the two between.
  const int number = level <= kEnableCount                ? static_cast<int>(level)
                     : level <= kEnableTimeExceptForMutex ? rocksdb_enable_time_except_for_mutex
                                                          : rocksdb_enable_time;
  rocksdb_set_perf_level(number);
}

PerfLevel GetPerfLevel() { return perf_level; }

namespace {

struct OfThread : public PerfContext {
  OfThread() {
#include "perf_context.inc"
  }
};

OfThread& ThreadFigures() {
  thread_local OfThread context;
  return context;
}

}  // namespace

uint64_t PerfFigure::Counted() const {
  return number_ < 0 ? 0 : rocksdb_perfcontext_metric(Figures(), number_);
}

PerfContext* get_perf_context() { return &ThreadFigures(); }

IOStatsContext* get_iostats_context() {
  thread_local IOStatsContext context;
  return &context;
}

void PerfContext::Reset() {
  if (this == &ThreadFigures()) rocksdb_perfcontext_reset(Figures());
  *this = PerfContext();
}

std::string PerfContext::ToString(bool exclude_zero_counters) const {
  return Take(rocksdb_perfcontext_report(Figures(), exclude_zero_counters ? 1 : 0));
}

}  // namespace ROCKSDB_NAMESPACE
