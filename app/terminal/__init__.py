"""The terminal around the screen: what is used of Textual itself, themes, clipboard, bell, tmux."""
