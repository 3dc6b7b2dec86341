"""One evening with five agents, played with keys in a real tmux: an end-to-end test, and the README's recording."""
