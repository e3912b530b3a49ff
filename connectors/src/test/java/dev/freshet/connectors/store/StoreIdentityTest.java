package dev.freshet.connectors.store;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** When a store counts as having lost data, also across a rescaling or a failover of the job. */
final class StoreIdentityTest {

  private static StoreIdentity fresh() {
    return StoreIdentity.join(List.of());
  }

  @Test
  void theFirstContactIsNoLoss() {
    StoreIdentity identity = fresh();
    assertThat(identity.connected(Set.of("a", "b"))).isFalse();
    assertThat(identity.connected(Set.of("a"))).isFalse();
    assertThat(identity.isRestorePending()).isFalse();
  }

  @Test
  void anUnknownServerIsALossUntilItIsRestored() {
    StoreIdentity identity = fresh();
    identity.connected(Set.of("a"));
    assertThat(identity.connected(Set.of("b"))).isTrue();
    assertThat(identity.isRestorePending()).isTrue();
    identity.restored();
    assertThat(identity.isRestorePending()).isFalse();
    assertThat(identity.connected(Set.of("b"))).isFalse();
  }

  @Test
  void aPendingRestoreOfOneSubtaskIsEverySubtasks() {
    StoreIdentity noticed = fresh();
    noticed.connected(Set.of("a"));
    StoreIdentity other = StoreIdentity.join(List.of(noticed.toState()));
    noticed.connected(Set.of("b"));
    other.connected(Set.of("b"));
    other.restored();
    assertThat(StoreIdentity.join(List.of(other.toState())).isRestorePending()).isFalse();
    assertThat(StoreIdentity.join(List.of(other.toState(), noticed.toState())).isRestorePending())
        .isTrue();
  }

  @Test
  void aLossThatOnlyOneSubtaskHadNoticedIsRestoredByAll() {
    StoreIdentity noticed = fresh();
    noticed.connected(Set.of("a"));
    StoreIdentity unaware = StoreIdentity.join(List.of(noticed.toState()));
    noticed.connected(Set.of("b"));
    noticed.restored();

    StoreIdentity joined = StoreIdentity.join(List.of(unaware.toState(), noticed.toState()));
    assertThat(joined.isRestorePending()).isTrue();
    assertThat(joined.connected(Set.of("b"))).isFalse();
  }

  @Test
  void aSubtaskThatNeverReachedTheStoreKnowsNothing() {
    StoreIdentity reached = fresh();
    reached.connected(Set.of("a"));
    StoreIdentity joined = StoreIdentity.join(List.of(fresh().toState(), reached.toState()));
    assertThat(joined.isRestorePending()).isFalse();
    assertThat(joined.connected(Set.of("b"))).isTrue();
  }
}
