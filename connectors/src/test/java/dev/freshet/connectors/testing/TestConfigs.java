package dev.freshet.connectors.testing;

/** The two JSON configurations, as the Python side writes them. */
public final class TestConfigs {

  public static final String TABLE = "cpu_stl";

  private static final String TABLE_JSON =
      """
      {"table": "cpu_stl", "origin": 1,
       "source": {"topic": "events.cpu_stl", "key": "key", "timestamp": "ts", "value": "value",
                  "id": null, "kind": "scalar", "max_event_bytes": 1048576},
       "feedback_topic": "feedback.cpu_stl", "changes_topic": "changes.cpu_stl",
       "dead_letters_topic": "dead-letters.cpu_stl", "progress_topic": "progress",
       "window": {"points": 864}, "min_points": 864,
       "policy": "regret-proportional", "policy_seed": 0, "default_regret": 1e-6,
       "max_regret": 1e12, "missing_regret": null, "keep_versions": 1, "on_demand": null,
       "budget": {"kind": "time-share", "share": 0.5},
       "freshness_slo_ms": 300000, "regions": ["local:home"],
       "priority_weight": 1.0, "ttl_ms": null,
       "out_of_orderness_ms": 0, "idle_timeout_ms": 5000, "max_future_ms": 86400000,
       "function_timeout_ms": 30000, "bundle_target_ms": 50, "bundle_max_keys": 256,
       "max_value_bytes": 1048576, "parallelism": 1, "max_parallelism": 128}
      """;

  private TestConfigs() {}

  /** The table's JSON; each pair is a text in it and its replacement. */
  public static String table(String... replacements) {
    String json = TABLE_JSON;
    for (int i = 0; i < replacements.length; i += 2) {
      if (!json.contains(replacements[i])) {
        throw new IllegalArgumentException("'" + replacements[i] + "' is not in the JSON");
      }
      json = json.replace(replacements[i], replacements[i + 1]);
    }
    return json;
  }

  /** The deployment's JSON with this Redis. */
  public static String deployment(String redisUrl, boolean cluster) {
    return deployment("127.0.0.1:1", redisUrl, cluster);
  }

  /** The deployment's JSON with this Kafka and this Redis. */
  public static String deployment(String bootstrapServers, String redisUrl, boolean cluster) {
    return String.format(
        """
        {"kafka": {"bootstrap.servers": "%s"},
         "redis": {"url": "%s", "cluster": %s, "prefix": "", "tombstone_retention_ms": 86400000},
         "region": "local:home", "start_offsets": "committed-or-earliest",
         "group": "freshet-cpu_stl"}
        """,
        bootstrapServers, redisUrl, cluster);
  }
}
