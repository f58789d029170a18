"""Jobs whose files clean-up must leave, and directories around them."""
