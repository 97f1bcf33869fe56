"""Problem sets in the Hugging Face columns code, level, name, problem_id: read, written, fetched. Runs nothing of them."""
