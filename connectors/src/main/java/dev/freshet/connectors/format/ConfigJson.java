package dev.freshet.connectors.format;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import com.fasterxml.jackson.databind.json.JsonMapper;

/** Reads a JSON configuration object into a record; unknown fields are a newer writer's. */
public final class ConfigJson {

  private static final ObjectMapper MAPPER =
      JsonMapper.builder()
          .propertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
          .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
          .build();

  private ConfigJson() {}

  public static <T> T read(String what, String json, Class<T> type) {
    try {
      T value = MAPPER.readValue(json, type);
      if (value != null) {
        return value;
      }
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException(
          what + " is not the expected JSON object: " + e.getOriginalMessage(), e);
    }
    throw new IllegalArgumentException(what + " is null; pass its JSON object");
  }
}
