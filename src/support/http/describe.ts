import type * as HttpClientError from "effect/http/HttpClientError"
import * as Predicate from "effect/Predicate"
import { oneLine } from "../text/untrusted.ts"
import { Refused } from "./rules.ts"

/** Finds the rule that made a request fail. */
export const refusalOf = (error: unknown): Refused | undefined => {
  let one = error
  for (let depth = 0; depth < 8; depth++) {
    if (one instanceof Refused) return one
    if (Predicate.hasProperty(one, "reason") && one.reason !== one) one = one.reason
    else if (Predicate.hasProperty(one, "cause")) one = one.cause
    else return undefined
  }
  return undefined
}

const causeOf = (error: unknown): string | undefined => {
  let one = error
  let text: string | undefined
  for (let depth = 0; depth < 8 && Predicate.hasProperty(one, "cause"); depth++) {
    one = one.cause
    const code = Predicate.hasProperty(one, "code") && typeof one.code === "string" ? one.code : undefined
    const message = Predicate.hasProperty(one, "message") && typeof one.message === "string" ? one.message : undefined
    text = code ?? message ?? text
  }
  return text
}

/** Describes a failed request for a person or a model. */
export const describe = (error: HttpClientError.HttpClientError): string => {
  const why = refusalOf(error)
  if (why !== undefined) return why.message
  const cause = causeOf(error.reason)
  return cause === undefined ? error.message : `${error.message}: ${oneLine(cause)}`
}
