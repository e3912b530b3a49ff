package dev.freshet.connectors.store;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** Only a checkpoint that started everywhere after the moment proves anything. */
final class SettledCheckpointTest {

  private final SettledCheckpoint settled = new SettledCheckpoint();

  @Test
  void theSecondCheckpointInARowSettles() {
    settled.started(7);
    assertThat(settled.completed(7)).isFalse();
    settled.started(8);
    assertThat(settled.completed(8)).isTrue();
  }

  @Test
  void aCheckpointThatStartedBeforeTheMomentDoesNotCount() {
    assertThat(settled.completed(6)).isFalse();
    settled.started(7);
    assertThat(settled.completed(6)).isFalse();
    assertThat(settled.completed(7)).isFalse();
  }

  @Test
  void concurrentCheckpointsDoNotCountAsOneAfterTheOther() {
    settled.started(7);
    settled.started(8);
    assertThat(settled.completed(7)).isFalse();
    assertThat(settled.completed(8)).isFalse();
    settled.started(9);
    assertThat(settled.completed(9)).isTrue();
  }

  @Test
  void aFailedCheckpointIsMadeUpByTheNext() {
    settled.started(7);
    settled.started(8);
    assertThat(settled.completed(8)).isFalse();
    settled.started(9);
    settled.started(10);
    assertThat(settled.completed(10)).isTrue();
  }
}
