/** Parts of an agent whose options are wrong: runs of the agent fail with `InvalidAgent`. */
import * as Predicate from "effect/Predicate"
import { type Check, check } from "../../support/options/check.ts"
import { type AskingMiddleware, make } from "../Middleware.ts"
import type { Tool } from "../Tool.ts"

/** The name of an agent with any options. */
export const nameIn = (options: unknown): string =>
  Predicate.hasProperty(options, "name") && typeof options.name === "string" ? options.name : "agent"

/** Makes the check of a middleware's options: wrong ones make a middleware that keeps its agent from running. */
export const makeMiddlewareCheck = (
  name: string,
  shape: string
): ((options: unknown) => AskingMiddleware | undefined) => {
  const find = check(shape)
  return (options) => {
    const problem = find(options)
    return problem === undefined ? undefined : make({ name, asks: true, check: () => `${name}: ${problem}` })
  }
}

/** Options and their problem. With a problem they are empty: an agent with the problem never runs. */
export const readOptions = <Options extends object>(
  find: Check,
  options: Options
): readonly [options: Options, problem: string | undefined] => {
  const problem = find(options)
  return problem === undefined ? [options, undefined] : [{} as Options, problem]
}

/** Makes a tool keep its agent from running, if there is a problem. */
export const refuseTool = <One extends Tool<unknown>>(problem: string | undefined, tool: One): One =>
  problem === undefined ? tool : { ...tool, problem }

/** Makes tools keep their agent from running, if there is a problem. */
export const refuseTools = <const Tools extends ReadonlyArray<Tool<unknown>>>(
  problem: string | undefined,
  tools: Tools
): Tools =>
  // Each tool keeps its type.
  problem === undefined ? tools : (tools.map((tool) => ({ ...tool, problem })) as ReadonlyArray<unknown> as Tools)
