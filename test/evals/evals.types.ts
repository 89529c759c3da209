/** The failures and services of suites. */
import { Effect, type Layer } from "effect"
import type { Agent, Backend, ChatModel } from "effect-deepagents"
import { type Cases, Eval, type Report, Scorers } from "effect-deepagents/evals"
import type { DecisionModel } from "effect/ai/DecisionModel"

declare const agent: Agent.Agent
declare const files: Layer.Layer<Backend.Backend>
declare const cases: ReadonlyArray<Eval.Case>

type Suite<R> = Effect.Effect<Report.Report, Eval.EvalError, R>

export const plain: Suite<ChatModel.ChatModel> = Eval.suite({ agent, cases, scorers: [Scorers.expectations] })

const scorers = [Scorers.file("/a", () => true), Scorers.decided({ question: "Is it right?" })] as const

export const open: Suite<ChatModel.ChatModel | Backend.Backend | DecisionModel> = Eval.suite({ agent, cases, scorers })

export const provided: Suite<ChatModel.ChatModel | DecisionModel> = Eval.suite({
  agent,
  cases,
  scorers,
  layer: () => files
})

// @ts-expect-error the scorers need a decision model
export const missing: Suite<ChatModel.ChatModel> = Eval.suite({ agent, cases, scorers, layer: () => files })

// @ts-expect-error no agent gives numbers here
Eval.suite({ agent, cases, scorers: [(trial: Eval.Trial<number>) => Effect.succeed(trial.output === 1 ? [] : [])] })

export type { Cases }
