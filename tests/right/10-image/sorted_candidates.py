# Sorts all that fit, versions as one number of tens and units.
def image_for(images, chip):
    chip_number = 10 * chip[0] + chip[1]

    def usable(name):
        number = int(name.split("_")[1].replace("a", ""))
        if name[-1] == "a":
            return number == chip_number
        if name.startswith("compute"):
            return number <= chip_number
        return number // 10 == chip_number // 10 and number <= chip_number

    def key(i):
        return images[i].startswith("compute"), -int(images[i].split("_")[1].replace("a", ""))

    order = sorted((i for i in range(len(images)) if usable(images[i])), key=key)
    return order[0] if order else -1
