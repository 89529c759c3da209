/** The shapes of options, by which constructors check them. `npm run options` writes this file from the types. */

export const evalSuite =
  "agent:~effect-deepagents/Agent~;cases:a;scorers:[f];layer?:f;trials?:n;k?:n;concurrency?:n;limits?:{cost?:n;tokens?:n}"

export const learnRound = "threads:[s];paths:[s];evaluate:f;learner?:~effect-deepagents/Agent~;alpha?:n"

export const replayRerun = "agent:~effect-deepagents/Agent~;from?:s;threadId?:s;results?:'fresh''recorded'"

export const scorersDecided = "question:s;atLeast?:n"

export const scorersJudged = "criteria:[s]"
