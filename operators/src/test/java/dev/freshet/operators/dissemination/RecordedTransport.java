package dev.freshet.operators.dissemination;

import dev.freshet.connectors.chunk.Chunk;
import dev.freshet.connectors.chunk.ChunkCodec;
import dev.freshet.connectors.chunk.ChunkEntry;
import dev.freshet.connectors.chunk.DamagedChunkException;
import dev.freshet.connectors.link.Transport;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** Keeps what is sent, until the test says what becomes of it. */
final class RecordedTransport implements Transport {

  /** One chunk under way. */
  record Sent(String region, String table, int lane, byte[] bytes, Callback callback) {

    Chunk chunk() throws DamagedChunkException {
      return new ChunkCodec().decode(bytes);
    }

    List<ChunkEntry> entries() throws DamagedChunkException {
      return new ChunkCodec().entries(chunk());
    }

    void acknowledge() {
      callback.done(null);
    }

    void fail() {
      callback.done(new IOException("cut off"));
    }
  }

  final List<Sent> sent = new CopyOnWriteArrayList<>();

  @Override
  public void send(String region, String table, int lane, byte[] chunk, Callback callback) {
    sent.add(new Sent(region, table, lane, chunk, callback));
  }

  /** Takes what is under way out, to be answered. */
  List<Sent> take() {
    List<Sent> all = List.copyOf(sent);
    sent.removeAll(all);
    return all;
  }

  @Override
  public void close() {}
}
