/** The parser of YAML: many modules, which most programs never need. */
import { onDemand } from "./once.ts"

export type Yaml = typeof import("yaml")

/** Loads the parser. */
export const yaml = onDemand(() => import("yaml"))
