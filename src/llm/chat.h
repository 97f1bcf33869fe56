// What is asked of a model, whoever serves it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace kb::llm {

/// One turn of a conversation.
struct Message {
  enum class From { user, model };
  From from = From::user;
  std::string text;
};

struct Prompt {
  std::string system;  ///< may be empty
  std::vector<Message> messages;
};
nlohmann::json to_json(const Prompt& prompt);
/// SHA-256, hex, over everything that the model is told.
std::string hash_of(const Prompt& prompt);

/// How to answer. What is not set is left to the endpoint's default.
struct Settings {
  std::string model;
  std::optional<double> temperature, top_p;
  std::optional<int> max_tokens;       ///< of one answer, the reasoning included
  std::optional<std::int64_t> seed;    ///< of sample 0; sample i has seed + i
  std::string reasoning_effort;        ///< "low", "medium", "high" … as the endpoint has it
  std::optional<int> thinking_budget;  ///< tokens of reasoning; 0 turns it off
  bool stream = true;
  nlohmann::json extra = nlohmann::json::object();  ///< merged into the request's body
};
/// All that changes an answer: the members that are set.
nlohmann::json to_json(const Settings& settings);

/// One answer that is wanted.
struct Question {
  std::string name;  ///< of the answer's file: "level_1_problem_19_sample_0"
  int sample = 0;    ///< of several answers to one prompt
  Prompt prompt;
};

}  // namespace kb::llm
