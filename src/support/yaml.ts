/** The parser of YAML: many modules, which most programs never need. */
import type * as Parser from "yaml"
import { onDemand } from "./once.ts"

export type Yaml = typeof Parser

/** Loads the parser. */
export const yaml = onDemand(() => import("yaml"))
