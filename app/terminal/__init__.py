"""The terminal around the screen: painting, themes, clipboard, bell, tmux."""
