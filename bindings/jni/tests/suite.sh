# Runs a suite that Maven fetches, on the stock library and on ours, and compares the two by test.
# Sourced by kafka, spark and flink, which set `name`, `version` and `usage`; also by examples that
# Maven fetches parts of. What is fetched is kept below target alone.

# Reads --profile, --version, --library and the names of classes.
arguments() {
    profile=release
    library=
    classes=()
    while [ $# -gt 0 ]; do
        case "$1" in
            --profile | --version | --library)
                if [ $# -lt 2 ]; then
                    echo "$usage" >&2
                    exit 2
                fi
                printf -v "${1#--}" %s "$2"
                shift
                ;;
            -*)
                echo "$usage" >&2
                exit 2
                ;;
            *) classes+=("$1") ;;
        esac
        shift
    done
}

# TOOL...: builds our library, unless --library says where one is. Sets `library` to its directory,
# and `work` to where the suite runs. Without Java, Maven or one of the tools the script ends.
prepare() {
    for tool in java mvn unzip "$@"; do
        if ! command -v "$tool" >/dev/null; then
            echo "$tool is not installed: $name is skipped"
            exit 0
        fi
    done
    target=${CARGO_TARGET_DIR:-$PWD/target}
    if [ -z "${library:-}" ]; then
        library=$target/$([ "$profile" = dev ] && echo debug || echo "$profile")
        cargo build -q -p esker-jni --profile "$profile"
    fi
    work=$target/suites/$name-$version
    rm -rf "$work"
    mkdir -p "$work/nothing" "$work/ours" "$work/stock"
}

# GROUP ARTIFACT VERSION [CLASSIFIER]
depends() {
    echo "<dependency><groupId>$1</groupId><artifactId>$2</artifactId>"
    echo "<version>$3</version>${4:+<classifier>$4</classifier>}</dependency>"
}

# Fetches the dependencies that standard input has, and sets `classpath`.
fetch() {
    {
        echo '<project xmlns="http://maven.apache.org/POM/4.0.0">'
        echo '<modelVersion>4.0.0</modelVersion>'
        echo '<groupId>esker</groupId><artifactId>suite</artifactId><version>1</version>'
        echo "<dependencies>$(cat)</dependencies></project>"
    } >"$work/pom.xml"
    if ! mvn -q -B -f "$work/pom.xml" dependency:build-classpath \
        -Dmdep.outputFile="$work/classpath" >"$work/mvn.txt" 2>&1; then
        grep -m 3 ERROR "$work/mvn.txt" >&2
        echo "the jars of $name $version cannot be fetched: skipped" >&2
        exit 0
    fi
    classpath=$(cat "$work/classpath")
}

# Adds to `flags` what Spark needs of the JVM.
spark_opens() {
    local package
    for package in java.lang java.lang.invoke java.lang.reflect java.io java.net java.nio \
        java.util java.util.concurrent java.util.concurrent.atomic sun.nio.ch sun.nio.cs \
        sun.security.action sun.util.calendar; do
        flags+=("--add-opens=java.base/$package=ALL-UNNAMED")
    done
}

# JUnit's console, for the classes in `classes`: LIBRARY WHERE.
junit() {
    local select=()
    for class in "${classes[@]}"; do
        select+=(--select-class "$class")
    done
    (cd "$2" && java "${flags[@]}" -Djava.library.path="$1" -cp "$classpath" \
        -Djava.io.tmpdir="$2" org.junit.platform.console.ConsoleLauncher execute \
        --disable-banner --disable-ansi-colors --details=none --reports-dir "$2/reports" \
        "${select[@]}")
}

# One line for each test: `ok` or `failed`, class, name.
outcomes() {
    cat "$1"/reports/TEST-*.xml | awk '
        function of(key,    at, rest) {
            at = index($0, " " key "=\"")
            rest = substr($0, at + length(key) + 3)
            return substr(rest, 1, index(rest, "\"") - 1)
        }
        function flush() { if (test != "") print outcome, test }
        /<testcase/ { flush(); test = of("classname") " " of("name"); outcome = "ok" }
        /<(failure|error)/ { if (test != "") outcome = "failed" }
        /<skipped/ { outcome = "skipped" }
        END { flush() }' | sort
}

# Runs `$1 LIBRARY WHERE` on the stock library and on ours, and fails where only ours fails.
compare() {
    local side path
    for side in stock ours; do
        path=$work/nothing
        [ $side = ours ] && path=$library
        "$1" "$path" "$work/$side" >"$work/$side.txt" 2>&1 || true
        if ! ls "$work/$side"/reports/TEST-*.xml >/dev/null 2>&1; then
            tail -n 40 "$work/$side.txt" >&2
            echo "$name: no test ran on $side" >&2
            exit 1
        fi
        outcomes "$work/$side" >"$work/$side.outcomes"
        echo "$name $version, $side: $(wc -l <"$work/$side.outcomes") tests," \
            "$(grep -c ^ok "$work/$side.outcomes" || true) passed," \
            "$(grep -c ^failed "$work/$side.outcomes" || true) failed," \
            "$(grep -c ^skipped "$work/$side.outcomes" || true) skipped"
    done
    # A test that passes on the stock library has to pass on ours; so has each run of one that
    # has several.
    if comm -23 <(grep ^ok "$work/stock.outcomes") <(grep ^ok "$work/ours.outcomes") | grep .; then
        echo "these pass on the stock library alone; $work/ours.txt has the texts" >&2
        exit 1
    fi
}
