# Shared by the tests of MyRocks, which source it: fetches MariaDB from Debian's package pool and
# builds the plugin from its unmodified sources over the C++ library. `prepare` does all of it. What
# it sets: $work, the directory of all files; $server, MariaDB unpacked; $debian and $esker, the
# directories of both plugins; $version. The current directory is the root of the repository.

version=10.11.18-0+deb12u1
profile=release library='' work='' temporary='' servers=()

# Servers of a test that failed end with it.
clean_up() {
    if [ "${#servers[@]}" != 0 ]; then kill -9 "${servers[@]}" 2>/dev/null || true; fi
    if [ -n "$temporary" ]; then rm -rf "$temporary"; fi
}
trap clean_up EXIT
. bindings/cxx/tests/debian.sh

skip() {
    echo "$1: MyRocks is not tested"
    exit 0
}

# option NAME [VALUE]: takes an option that all tests of MyRocks have; $taken is how many words.
option() {
    taken=2
    case "$1" in
        --profile) profile=${2:?$usage} ;;
        --library) library=${2:?$usage} ;;
        --keep) work=${2:?$usage} ;;
        *) echo "$usage" >&2; exit 2 ;;
    esac
}

# unpack TREE PACKAGE ...: downloads packages and unpacks them into TREE; once for each set.
unpack() {
    local tree=$1 debs done
    shift
    done=$tree/unpacked-$(echo "$*" | md5sum | cut -c1-8)
    if [ -e "$done" ]; then return; fi
    debs=$(mktemp -d "$work/debs.XXXXXX")
    (
        if [ -z "$(ls "$work"/lists/*_Packages* 2>/dev/null)" ]; then apt update; fi
        cd "$debs"
        apt download "$@"
        mkdir -p "$tree"
        for package in *.deb; do dpkg-deb -x "$package" "$tree"; done
        touch "$done"
    ) >"$work/fetch.log" 2>&1 || {
        tail -n 3 "$work/fetch.log"
        skip "MariaDB $version is not in Debian's package pool"
    }
    rm -rf "$debs"
}

fetch_source() {
    if [ -d "$work/source" ]; then return; fi
    rm -rf "$work/unpacked"
    (
        apt update
        cd "$work"
        apt --download-only source "mariadb=1:$version"
        dpkg-source --no-check -x "mariadb_$version.dsc" unpacked
        mv unpacked source
    ) >"$work/fetch.log" 2>&1 || {
        tail -n 3 "$work/fetch.log"
        skip "MariaDB $version is not in Debian's package pool"
    }
}

# packages NAME ...: the names with MariaDB's version.
packages() {
    printf "%s=1:$version\n" "$@"
}

fetch() {
    local tool program
    for tool in apt-get dpkg-source dpkg-deb g++ gcc ldd; do
        command -v "$tool" >/dev/null || skip "no $tool"
    done
    if [ -z "$work" ]; then
        temporary=$(mktemp -d)
        work=$temporary
    fi
    mkdir -p "$work"
    work=$(realpath "$work")
    server=$work/server debian=$server/usr/lib/mysql/plugin esker=$work/plugin
    fetch_source
    mapfile -t wanted < <(packages mariadb-server-core mariadb-client-core mariadb-client \
        mariadb-plugin-rocksdb libmariadbd-dev)
    unpack "$server" "${wanted[@]}" liburing2 libaio1
    libraries=$server/usr/lib/x86_64-linux-gnu:$server/lib/x86_64-linux-gnu:$work/lib
    for program in sbin/mariadbd bin/mariadb bin/mariadb-binlog lib/mysql/plugin/ha_rocksdb.so; do
        if LD_LIBRARY_PATH=$libraries ldd "$server/usr/$program" | grep "not found"; then
            skip "libraries of $program are not there"
        fi
    done
}

# compile HOW: compiles the plugin, with -c, or with -fsyntax-only, and counts the errors.
compile() {
    local source=$work/source objects=$work/objects generated=$work/generated header errors
    local engine=$source/storage/rocksdb
    # What MariaDB's build generates comes from its package of headers.
    mkdir -p "$generated" "$objects"
    rm -f "$objects"/*
    for header in my_config mysql_version mysqld_error mysqld_ername sql_state; do
        cp "$server/usr/include/mariadb/server/$header.h" "$generated/"
    done
    cp "$source/include/probes_mysql_nodtrace.h.in" "$generated/probes_mysql_nodtrace.h"
    local files=(ha_rocksdb rdb_mariadb_server_port rdb_i_s rdb_io_watchdog rdb_mutex_wrapper
                 rdb_index_merge properties_collector rdb_datadic rdb_cf_manager rdb_utils
                 rdb_threads rdb_psi rdb_sst_info rdb_converter rdb_cf_options event_listener
                 rdb_perf_context nosql_access)
    # As MariaDB's CMakeLists.txt has them; warnings are its own matter.
    local flags=(-O1 -fPIC -w -DMYSQL_DYNAMIC_PLUGIN -DHAVE_CONFIG_H -DDBUG_OFF -DNDEBUG
                 -D_FILE_OFFSET_BITS=64 -DROCKSDB_PLATFORM_POSIX -DROCKSDB_LIB_IO_POSIX
                 -DROCKSDB_SUPPORT_THREAD_LOCAL -DHAVE_SCHED_GETCPU=1 -DHAVE_TIMER_DELETE
                 -DOS_LINUX -Duint64_t=u_int64_t -Duint32_t=u_int32_t -Duint16_t=u_int16_t
                 -Duint8_t=u_int8_t)
    local headers=(-I"$generated" -Ibindings/cxx/tests/myrocks_headers -Ibindings/cxx/include
                   -Icrates/capi/include -I"$engine" -I"$source/include" -I"$source/sql"
                   -I"$source/wsrep-lib/include" -I"$source/wsrep-lib/wsrep-API/v26")
    export MYROCKS_ENGINE=$engine MYROCKS_OBJECTS=$objects
    printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -I '{}' bash -c '
        name=$1; shift
        exec g++ -std=gnu++17 "$@" "$MYROCKS_ENGINE/$name.cc" -o "$MYROCKS_OBJECTS/$name.o" \
            2>"$MYROCKS_OBJECTS/$name.log"
    ' myrocks '{}' "${flags[@]}" "${headers[@]}" "$1" || true
    errors=$(cat "$objects"/*.log | grep -c 'error:' || true)
    echo "MyRocks of MariaDB $version, ${#files[@]} files: $errors errors of compilation"
    if [ "$errors" != 0 ]; then
        cat "$objects"/*.log | grep 'error:' >&2
        exit 1
    fi
}

link() {
    local service source=$work/source objects=$work/objects
    for service in my_print_error my_snprintf thd_alloc kill_statement; do
        gcc -O1 -fPIC -DHAVE_CONFIG_H -DDBUG_OFF -I"$work/generated" -I"$source/include" \
            -c "$source/libservices/${service}_service.c" -o "$objects/$service.o"
    done
    mkdir -p "$esker"
    CXX=g++ bindings/cxx/build "$work/cxx"
    g++ -shared -o "$esker/ha_rocksdb.so" "$objects"/*.o "$work/cxx/librocksdb_cxx.a" \
        "$work/lib/librocksdb.so.11" -lpthread
}

# newer FILE DIRECTORY ...: a file of the directories is newer than FILE.
newer() {
    [ -n "$(find "${@:2}" -newer "$1" -type f)" ]
}

# prepare: fetches, and builds what is older than its sources.
prepare() {
    fetch
    if [ -z "$library" ]; then
        cargo rustc -q -p esker-capi --lib --profile "$profile" --crate-type cdylib,staticlib
        local folder=$profile
        if [ "$profile" = dev ]; then folder=debug; fi
        library=${CARGO_TARGET_DIR:-$PWD/target}/$folder
    fi
    mkdir -p "$work/lib"
    local copy=$work/lib/librocksdb.so.11
    # A server that runs keeps the file that it has.
    if ! cmp -s "$library/librocksdb.so" "$copy"; then
        cp "$library/librocksdb.so" "$copy.new"
        mv "$copy.new" "$copy"
    fi
    local built=$esker/ha_rocksdb.so objects=$work/objects
    if [ ! -e "$objects/complete" ] || newer "$objects/complete" bindings/cxx/include \
        bindings/cxx/tests/myrocks_headers crates/capi/include; then
        compile -c
        touch "$objects/complete"
    fi
    if [ ! -e "$built" ] || newer "$built" "$objects" bindings/cxx/src; then link; fi
}
