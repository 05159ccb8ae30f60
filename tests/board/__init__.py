"""Tests of the capstone's leaderboard."""
