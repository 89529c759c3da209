/**
 * Lets agents talk about a task in turn. A coordinator says who speaks next, or they go round.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { Team } from "effect-deepagents/patterns"
 *
 * const architect = Agent.make({ name: "architect", description: "Designs", prompt: "You design systems." })
 * const sceptic = Agent.make({ name: "sceptic", description: "Doubts", prompt: "You find what is wrong with a design." })
 * const team = Team.make({ members: [architect, sceptic], rounds: 4 })
 *
 * const program = Effect.map(Agent.run(team, "Design a queue"), ({ output }) => output.text)
 * ```
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Agent from "../core/Agent.ts"
import type { AgentError } from "../core/AgentError.ts"
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import { ToolContext } from "../core/ToolContext.ts"
import { cut } from "../support/text/text.ts"
import { quote } from "../support/text/untrusted.ts"
import { ask } from "./internal/ask.ts"
import { compose } from "./internal/compose.ts"
import { refuseCounts, refuseTwins } from "./internal/refuse.ts"
import * as shapes from "./internal/shapes.ts"

/** The decision of a coordinator: who speaks next and on what, or the answer. */
export const Turn = Schema.Struct({
  next: Schema.String.annotate({ description: "The name of the member that speaks next" }),
  prompt: Schema.String.annotate({ description: "What it is to say or do" }),
  isDone: Schema.Boolean.annotate({ description: "True when the task is done" }),
  answer: Schema.String.annotate({ description: "The answer of the team, when it is done. Else empty" })
})
export type Turn = typeof Turn.Type

/** The answer of a team, and the turns of its members. `isDone` is false if the rounds or the budget were used up first. */
export const Result = Schema.Struct({
  text: Schema.String,
  isDone: Schema.Boolean,
  said: Schema.Array(Schema.Struct({ who: Schema.String, text: Schema.String })),
  reason: Schema.String
})
export type Result = typeof Result.Type

const refuseMake = makeMiddlewareCheck("Team", shapes.teamMake)

/** The most characters of a turn that others see. */
const longestTurn = 2_000

/**
 * Makes a team. Each member has a conversation of its own, and hears all turns since its own last turn. Without a
 * coordinator the members go round, and the last one has the last word. Members share their shared slots (`AgentState.slot`). Each turn emits a custom event `turn`.
 *
 * A member that fails, or that there is not, is reported to the others. A failure that all members share (the quota, the
 * key, the account, the thread) ends everything at once.
 */
export const make = <O extends string | undefined, E, R, E2 = never, R2 = never>(options: {
  /** The members. Their names and descriptions are shown to the coordinator. */
  readonly members: ReadonlyArray<Agent.Agent<O, E, R>>
  /** The agent that says who speaks next. Default: the members go round. */
  readonly coordinator?: Agent.Agent<Turn | undefined, E2, R2> | undefined
  /** The most turns of members. Default: 10 with a coordinator, else one for each member. */
  readonly rounds?: number | undefined
  /** The name of the team, in events and errors. Default: `team`. */
  readonly name?: string | undefined
  /** The description for other agents. Default: empty. */
  readonly description?: string | undefined
}): Agent.Program<string, Result | Extract<O, undefined>, E | E2 | AgentError, R | R2> => {
  const refused =
    refuseMake(options) ??
    refuseCounts("Team", { rounds: options.rounds }) ??
    refuseTwins("Team", options.members, team)
  const { coordinator, description, members } = options
  const rounds = options.rounds ?? (coordinator === undefined ? members?.length : 10)

  const run = Effect.fnUntraced(function* (task: string) {
    const { run } = yield* ToolContext
    const turns: Array<{ readonly who: string; readonly text: string }> = []
    /** How much each speaker has heard. */
    const heardCounts = new Map<unknown, number>()
    const staff = members.map((one) => `- ${one.name}: ${one.description}`).join("\n")
    const last = (): string => turns.findLast(({ who }) => who !== team)?.text ?? ""
    const end = (isDone: boolean, text: string, reason: string): Result => ({ text, isDone, said: turns, reason })

    /** The turns since the last turn of a speaker. */
    const newsFor = (speaker: AnyMember): string => {
      const from = heardCounts.get(speaker) ?? 0
      heardCounts.set(speaker, turns.length)
      const news = turns.slice(from).map(({ text, who }) => `${who}:\n${quote(cut(text, longestTurn))}`)
      return news.length === 0 ? "" : `\n\n${news.join("\n\n")}`
    }
    const isFirst = (speaker: AnyMember): boolean => !heardCounts.has(speaker)

    const next = Effect.fnUntraced(function* (round: number) {
      if (coordinator === undefined) {
        return {
          next: members[round % members.length]?.name ?? "",
          prompt: "It is your turn.",
          isDone: false,
          answer: ""
        }
      }
      const opening = isFirst(coordinator) ? `${task}\n\nThe members:\n${staff}` : "Who is next?"
      const outcome = yield* ask(coordinator, `${opening}${newsFor(coordinator)}`, "coordinator")
      if (outcome._tag === "Answered") return outcome.output
      return outcome.isSpent || turns.length > 0 ? outcome.problem : yield* Effect.fail(outcome.error)
    })

    for (let round = 0; round < rounds; round++) {
      const turn = yield* next(round)
      if (typeof turn === "string") return end(false, last(), `The coordinator stopped: ${turn}`)
      if (turn.isDone) return end(true, turn.answer, "The coordinator is done.")
      const member = members.find(({ name }) => name === turn.next)
      if (member === undefined) {
        turns.push({ who: team, text: `There is no member "${turn.next}". The members:\n${staff}` })
        continue
      }
      const opening = isFirst(member) ? `${task}\n\n` : ""
      const outcome = yield* ask(member, `${opening}${turn.prompt}${newsFor(member)}`, "member")
      if (outcome._tag === "Unanswered" && outcome.isSpent)
        return end(false, last(), `${member.name} stopped: ${outcome.problem}`)
      const isAnswered = outcome._tag === "Answered"
      turns.push(
        isAnswered
          ? { who: member.name, text: outcome.output }
          : { who: team, text: `${member.name} failed: ${outcome.problem}` }
      )
      heardCounts.set(member, turns.length)
      yield* run.custom("turn", { who: member.name, isAnswered })
    }
    return coordinator === undefined
      ? end(true, last(), "All members had their turns.")
      : end(false, last(), `All ${rounds} turns are used.`)
  })

  return Agent.program({
    name: options.name ?? "team",
    description,
    output: Result,
    ...compose(refused, () => (coordinator === undefined ? members : [coordinator, ...members])),
    run
  })
}

type AnyMember = Agent.Agent<unknown, unknown, unknown>

/** The speaker of notices. */
const team = "team"
