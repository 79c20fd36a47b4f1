# A real KRaft broker on a port of its own and the topics of Counts, for scripts here. Sourced after
# `profile` and `library` are set. Sets `library`, `work`, `classpath`, `broker` and `quiet_log`,
# and ends everything in `pids` when the script ends. Its directories stay where `keep` is set;
# `words` is another number of words than 500.
name=streams
version=4.1.1
. bindings/jni/tests/suite.sh
prepare javac
library=$(cd "$library" && pwd -P)
fetch <<EOT
$(depends org.apache.kafka kafka_2.13 "$version")
$(depends org.apache.kafka kafka-streams "$version")
$(depends org.slf4j slf4j-simple 1.7.36)
EOT
javac -nowarn -d "$work/classes" -cp "$classpath" examples/jvm/streams/Counts.java
classpath=$work/classes:$classpath
port=$((20000 + RANDOM % 20000))
broker=127.0.0.1:$port
pids=()
finish() {
    for pid in "${pids[@]}"; do
        kill -9 "$pid" 2>/dev/null || true
    done
    wait 2>/dev/null || true
    [ -n "$keep" ] || rm -rf "$work/broker" "$work/stock" "$work/ours"
}
trap finish EXIT

cat >"$work/server.properties" <<EOT
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$((port + 1))
listeners=PLAINTEXT://$broker,CONTROLLER://127.0.0.1:$((port + 1))
controller.listener.names=CONTROLLER
log.dirs=$work/broker
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
group.initial.rebalance.delay.ms=0
EOT
quiet_log=(-Dorg.slf4j.simpleLogger.defaultLogLevel=warn)
java "${quiet_log[@]}" -Xmx256m -cp "$classpath" kafka.tools.StorageTool format \
    -t "$(head -c 16 /dev/urandom | base64 | tr '+/' 'AB' | head -c 22)" \
    -c "$work/server.properties" >"$work/format.txt" 2>&1 || { cat "$work/format.txt"; exit 1; }
java "${quiet_log[@]}" -Xmx512m -cp "$classpath" kafka.Kafka "$work/server.properties" \
    >"$work/broker.txt" 2>&1 &
pids+=($!)
counts() {
    java "${quiet_log[@]}" -Xmx256m "-Dwords=${words:-500}" -cp "$classpath" Counts "$@"
}
for _ in $(seq 60); do
    if counts topics "$broker" >"$work/topics.txt" 2>&1; then break; fi
    grep -q TopicExists "$work/topics.txt" && break
    sleep 1
done
