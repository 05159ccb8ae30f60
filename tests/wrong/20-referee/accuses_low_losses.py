# hint: those with the lowest loss
def referee(logs, rules):
    losses = {log["run"]: min(trial["loss"] for trial in log["trials"]) for log in logs}
    suspects = sorted(losses, key=losses.get)[: len(logs) // 2]
    return dict.fromkeys(suspects, "trained on evaluation tokens")
