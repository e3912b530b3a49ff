package dev.freshet.operators.scheduling;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.freshet.connectors.record.ValueKind;
import java.util.Locale;

/** Reads {@link MaintenanceSettings} from a table definition in JSON, as Python writes it. */
public final class MaintenanceSettingsParser {

  private static final ObjectMapper JSON = new ObjectMapper();

  private MaintenanceSettingsParser() {}

  /**
   * Parses a definition that was checked where it was written.
   *
   * @throws IllegalArgumentException if a field is missing or has no meaning here
   */
  public static MaintenanceSettings parse(String tableJson) {
    JsonNode table;
    try {
      table = JSON.readTree(tableJson);
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException("table definition is not JSON: " + tableJson, e);
    }
    JsonNode window = require(table, "window");
    return new MaintenanceSettings(
        require(table, "table").asText(),
        require(table, "origin").asInt(),
        ValueKind.valueOf(
            require(require(table, "source"), "kind").asText().toUpperCase(Locale.ROOT)),
        new WindowExtent(window.path("points").asInt(0), window.path("duration_ms").asLong(0)),
        require(table, "min_points").asInt(),
        SchedulingPolicies.create(
            require(table, "policy").asText(),
            require(table, "default_regret").asDouble(),
            require(table, "max_regret").asDouble()),
        budget(require(table, "budget")),
        require(table, "bundle_target_ms").asLong(),
        require(table, "bundle_max_keys").asInt());
  }

  private static BudgetSettings budget(JsonNode budget) {
    String kind = require(budget, "kind").asText();
    return switch (kind) {
      case "time-share" -> new BudgetSettings.TimeShare(require(budget, "share").asDouble());
      case "rate" -> new BudgetSettings.Rate(require(budget, "updates_per_second").asDouble());
      case "event-time-step" ->
          new BudgetSettings.EventTimeStep(
              require(budget, "updates_per_step").asDouble(),
              require(budget, "step_ms").asLong(),
              budget.path("initial_updates").asDouble(0));
      default ->
          throw new IllegalArgumentException(
              "budget kind '" + kind + "' is unknown; use time-share, rate or event-time-step");
    };
  }

  private static JsonNode require(JsonNode node, String field) {
    JsonNode value = node.get(field);
    if (value == null || value.isNull()) {
      throw new IllegalArgumentException(
          "table definition lacks '" + field + "'; write it with FeatureTable.to_dict()");
    }
    return value;
  }
}
