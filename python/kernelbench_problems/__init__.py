"""Problem sets in the Hugging Face columns code, level, name and problem_id. Runs nothing of them."""
