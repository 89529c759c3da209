/** Refuses numbers and names of patterns that types allow. */
import * as Middleware from "../../core/Middleware.ts"
import type { AnyAgent } from "./ask.ts"

const refuse = (name: string, problem: string): Middleware.Middleware => Middleware.make({ name, check: () => problem })

/** Refuses counts that are no whole numbers of at least 1; `least` says otherwise. */
export const refuseCounts = (
  name: string,
  counts: { readonly [option: string]: number | undefined },
  least = 1
): Middleware.Middleware | undefined => {
  const wrong = Object.entries(counts).find(
    ([, count]) => count !== undefined && !(count === Infinity || (Number.isInteger(count) && count >= least))
  )
  if (wrong === undefined) return undefined
  const [option, count] = wrong
  return refuse(name, `${name}: \`${option}\` must be a whole number of at least ${least}, not ${count}`)
}

/** Refuses agents of one name, and of the name `own` of the pattern itself: they would share a conversation. */
export const refuseTwins = (
  name: string,
  agents: ReadonlyArray<AnyAgent>,
  own?: string
): Middleware.Middleware | undefined => {
  const names = agents.map((agent) => agent.name)
  if (own !== undefined && names.includes(own))
    return refuse(name, `${name}: no agent can be named "${own}": the notices of the pattern have that name`)
  const twin = names.find((one, index) => names.indexOf(one) < index)
  return twin === undefined ? undefined : refuse(name, `${name}: two agents are named ${JSON.stringify(twin)}`)
}
