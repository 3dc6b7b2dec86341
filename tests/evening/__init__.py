"""One evening with five agents, played with keys in a real tmux: as an end-to-end test, and as the README's recording."""
