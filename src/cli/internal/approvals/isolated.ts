/**
 * The place of a command, by the arguments of its call: `outside: false` runs in the sandbox of this machine. Each other
 * call runs with the rights of the person.
 */
import type { JsonObject } from "../../../core/Json.ts"

/** The tool whose calls may run isolated. */
export const toolName = "execute"

/** A call, as rules see it. */
interface Call {
  readonly name: string
  readonly arguments: JsonObject
}

/** Tells whether a call runs isolated. */
export const isIsolated = (call: Call): boolean => call.name === toolName && call.arguments["outside"] === false

/** Tells whether a call asks for the rights of the person. */
export const isOutside = (call: Call): boolean => call.name === toolName && call.arguments["outside"] === true

/** Changes the place of a call. `undefined` leaves it open, as in calls of the built-in tool. */
export const placeAt = ({ outside: _outside, ...args }: JsonObject, outside: boolean | undefined): JsonObject =>
  outside === undefined ? args : { ...args, outside }

/** Words of programs that lack the network, the home, a program or rights. Bounded gaps keep the search linear. */
const limits =
  /could not resolve|getaddrinfo|EAI_AGAIN|ENOTFOUND|name resolution|network is unreachable|ENETUNREACH|ECONNREFUSED|connection refused|failed to connect|EROFS|read-only file system|EACCES|EPERM|permission denied|operation not permitted|cannot connect to|command not found|: not found|\/(?:home|root|run|var)\/[^\n]{0,200}no such file|no such file[^\n]{0,200}\/(?:home|root|run|var)\//i

/** Reports whether the output of a command may come from the limits of the sandbox. */
export const mentionsLimit = (output: string): boolean => limits.test(output)
