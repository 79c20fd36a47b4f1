// Options as text, taken apart.

#include "rocksdb/convenience.h"

namespace ROCKSDB_NAMESPACE {

namespace {

std::string Trimmed(const std::string& text) {
  const size_t from = text.find_first_not_of(" \t\r\n");
  if (from == std::string::npos) return "";
  return text.substr(from, text.find_last_not_of(" \t\r\n") - from + 1);
}

// The place after the brace that closes the one at `open`; npos without one.
size_t AfterBraces(const std::string& text, size_t open) {
  int depth = 0;
  for (size_t at = open; at < text.size(); ++at) {
    if (text[at] == '{') ++depth;
    if (text[at] == '}' && --depth == 0) return at + 1;
  }
  return std::string::npos;
}

}  // namespace

Status StringToMap(const std::string& text, std::unordered_map<std::string, std::string>* pairs) {
  std::string rest = Trimmed(text);
  if (!rest.empty() && rest.front() == '{' && AfterBraces(rest, 0) == rest.size()) {
    rest = Trimmed(rest.substr(1, rest.size() - 2));
  }
  while (!rest.empty()) {
    const size_t equals = rest.find('=');
    const std::string name = Trimmed(rest.substr(0, equals));
    if (equals == std::string::npos || name.empty()) {
      return Status::InvalidArgument("Mismatched key value pair, '=' expected", rest);
    }
    rest = Trimmed(rest.substr(equals + 1));
    size_t end = rest.find(';');
    std::string value;
    if (!rest.empty() && rest.front() == '{') {
      const size_t after = AfterBraces(rest, 0);
      if (after == std::string::npos) return Status::InvalidArgument("Mismatched braces", name);
      end = rest.find_first_not_of(" \t\r\n", after);
      if (end != std::string::npos && rest[end] != ';') {
        return Status::InvalidArgument("Unexpected chars after nested options", name);
      }
      value = Trimmed(rest.substr(1, after - 2));
    } else {
      value = Trimmed(rest.substr(0, end));
    }
    (*pairs)[name] = value;
    rest = end == std::string::npos ? "" : Trimmed(rest.substr(end + 1));
  }
  return Status::OK();
}

}  // namespace ROCKSDB_NAMESPACE
