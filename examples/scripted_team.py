"""A team that changes by a schedule, told in sentences."""

import dropin
from dropin.policies import make_policy
from dropin.render.episode import record_episode
from dropin.render.story import tell_story

openness = dropin.Scripted(
    initial_slots=[1, 2],
    schedule=[
        (5, "leaves", 1),  # at the end of step 5
        (8, "enters", 1),  # somebody else, with a new level and a new type
        (8, "enters", 3),
        (20, "leaves", 2),
    ],
)
env = dropin.make("lbf", team_limit=4, types=["H6", "H8"], openness=openness)

for sentence in tell_story(env, record_episode(env, make_policy(env, "H6"), seed=12)):
    print(sentence)
