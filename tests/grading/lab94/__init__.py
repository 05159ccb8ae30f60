"""A lab that only tests have: a contest whose scripts are read and never played, which takes no time."""
