// Threads and what they do, as Env::GetThreadList() gives them out. The engine lists none.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

struct ThreadStatus {
  enum ThreadType : int {
    HIGH_PRIORITY = 0,
    LOW_PRIORITY,
    USER,
    BOTTOM_PRIORITY,
    NUM_THREAD_TYPES
  };
  enum OperationType : int { OP_UNKNOWN = 0, OP_COMPACTION, OP_FLUSH, NUM_OP_TYPES };
  enum OperationStage : int { STAGE_UNKNOWN = 0, NUM_OP_STAGES };
  enum StateType : int { STATE_UNKNOWN = 0, STATE_MUTEX_WAIT = 1, NUM_STATE_TYPES };
  static constexpr int kNumOperationProperties = 6;

  const uint64_t thread_id = 0;
  const ThreadType thread_type = USER;
  const std::string db_name;
  const std::string cf_name;
  const OperationType operation_type = OP_UNKNOWN;
  const uint64_t op_elapsed_micros = 0;
  const OperationStage operation_stage = STAGE_UNKNOWN;
  uint64_t op_properties[kNumOperationProperties] = {};
  const StateType state_type = STATE_UNKNOWN;

  static std::string GetThreadTypeName(ThreadType type);
  static const std::string& GetOperationName(OperationType type);
  static const std::string& GetOperationStageName(OperationStage stage);
  static const std::string& GetStateName(StateType type);
  static std::string MicrosToString(uint64_t micros);
  // Empty: the engine gives no figures of operations.
  static std::map<std::string, uint64_t> InterpretOperationProperties(OperationType type,
                                                                      const uint64_t* properties);
};

}  // namespace ROCKSDB_NAMESPACE
