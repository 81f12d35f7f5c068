"""A team that comes and goes by a schedule, told in sentences."""

import dropin
from dropin.players import player
from dropin.render.episode import record
from dropin.render.story import story

schedule = dropin.Scripted(
    first=[1, 2],
    events=[
        (5, "leaves", 1),  # at the end of step 5
        (8, "enters", 1),  # somebody else, with a new level and a new type
        (8, "enters", 3),
        (20, "leaves", 2),
    ],
)
env = dropin.make("lbf", team_limit=4, types=["H6", "H8"], openness=schedule)

for sentence in story(env, record(env, player(env, "H6"), seed=12)):
    print(sentence)
