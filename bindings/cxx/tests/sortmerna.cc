// SortMeRNA's database of alignments (its kvdb.cpp, unchanged) in use: prints what it reads.
// usage: sortmerna DIRECTORY [--write]

#include "kvdb.hpp"

#include <cstdint>
#include <iostream>
#include <string>

namespace {

const int reads = 20000;

std::string key_of(int read) { return "0_" + std::to_string(read); }

std::string record_of(int read, int round) {
    std::string record;
    std::uint64_t state = static_cast<std::uint64_t>(read) * 2654435761U + round;
    for (int size = 40 + read % 200; size > 0; --size) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        record.push_back(static_cast<char>(state >> 56));
    }
    return record;
}

void write(const std::string& directory) {
    KeyValueDatabase database(directory);
    for (int round = 0; round < 2; ++round) {
        for (int read = 0; read < reads; read += 1 + round) {
            database.put(key_of(read), record_of(read, round));
        }
    }
}

// Counts records by what they hold, and mixes all of them into one number.
void print(const std::string& directory) {
    KeyValueDatabase database(directory);
    int first = 0, second = 0, other = 0, missing = 0;
    std::uint64_t mixed = 14695981039346656037U;
    for (int read = 0; read < reads + 100; ++read) {
        const std::string record = database.get(key_of(read));
        for (unsigned char byte : record) mixed = (mixed ^ byte) * 1099511628211U;
        if (record.empty()) {
            ++missing;
        } else if (record == record_of(read, 0)) {
            ++first;
        } else if (record == record_of(read, 1)) {
            ++second;
        } else {
            ++other;
        }
    }
    std::cout << first << " first, " << second << " second, " << other << " other, " << missing
              << " missing, " << mixed << ", clear " << database.clear(directory) << "\n";
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 2) return 2;
    if (count > 2) write(arguments[1]);
    print(arguments[1]);
}
