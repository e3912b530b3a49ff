package dev.freshet.operators.scheduling;

import org.apache.flink.runtime.state.StateBackend;
import org.apache.flink.runtime.state.hashmap.HashMapStateBackend;
import org.apache.flink.state.rocksdb.EmbeddedRocksDBStateBackend;
import org.apache.flink.state.rocksdb.EmbeddedRocksDBStateBackend.PriorityQueueStateType;

/** The state backends that users run. */
enum Backend {
  HEAP,
  ROCKSDB,
  /** Here Flink writes its timers before the operator's own snapshot. */
  ROCKSDB_INCREMENTAL_HEAP_TIMERS;

  StateBackend create() {
    switch (this) {
      case HEAP:
        return new HashMapStateBackend();
      case ROCKSDB:
        return new EmbeddedRocksDBStateBackend(false);
      default:
        EmbeddedRocksDBStateBackend backend = new EmbeddedRocksDBStateBackend(true);
        backend.setPriorityQueueStateType(PriorityQueueStateType.HEAP);
        return backend;
    }
  }
}
