/**
 * Remote MCP servers that the services themselves run, as data: for whoever prefers those to a connector.
 *
 * ```ts
 * import { McpCatalogue } from "effect-deepagents/tools"
 *
 * const linear = McpCatalogue.find("linear")
 * // { name: "linear", url: "https://mcp.linear.app/mcp", auth: "oauth", … }
 * ```
 *
 * Each address was looked up in what is published of it in November 2026; none was asked, and they change without notice.
 * Services that register no clients by themselves (Asana, HubSpot) need a client of the application.
 */
import { normaliseName } from "../support/names.ts"

/**
 * A server, over streamable HTTP. `auth`: `oauth` signs in by MCP's own rules, `token` takes a bearer token of the
 * account, `none` needs nothing.
 *
 * @category models
 * @since 0.1.0
 */
export interface Server {
  readonly name: string
  readonly url: string
  readonly auth: "oauth" | "token" | "none"
  readonly gives: string
}

/**
 * The servers, by name.
 *
 * @category constants
 * @since 0.1.0
 */
export const servers: ReadonlyArray<Server> = [
  { name: "asana", url: "https://mcp.asana.com/v2/mcp", auth: "oauth", gives: "tasks, projects, goals" },
  {
    name: "atlassian",
    url: "https://mcp.atlassian.com/v1/mcp/authv2",
    auth: "oauth",
    gives: "Jira issues, Confluence pages"
  },
  { name: "canva", url: "https://mcp.canva.com/mcp", auth: "oauth", gives: "designs: searching, making, exporting" },
  {
    name: "cloudflare",
    url: "https://bindings.mcp.cloudflare.com/mcp",
    auth: "oauth",
    gives: "Workers, storage, databases of an account"
  },
  {
    name: "cloudflare-docs",
    url: "https://docs.mcp.cloudflare.com/mcp",
    auth: "none",
    gives: "Cloudflare's documentation"
  },
  {
    name: "context7",
    url: "https://mcp.context7.com/mcp",
    auth: "none",
    gives: "documentation of libraries, by version"
  },
  {
    name: "deepwiki",
    url: "https://mcp.deepwiki.com/mcp",
    auth: "none",
    gives: "questions about public GitHub repositories"
  },
  { name: "figma", url: "https://mcp.figma.com/mcp", auth: "oauth", gives: "designs as code, variables, components" },
  {
    name: "github",
    url: "https://api.githubcopilot.com/mcp/",
    auth: "token",
    gives: "repositories, issues, pull requests, actions"
  },
  { name: "hubspot", url: "https://mcp.hubspot.com", auth: "oauth", gives: "contacts, companies, deals, tickets" },
  {
    name: "hugging-face",
    url: "https://huggingface.co/mcp",
    auth: "token",
    gives: "models, data sets, papers, spaces"
  },
  { name: "intercom", url: "https://mcp.intercom.com/mcp", auth: "oauth", gives: "conversations, contacts" },
  { name: "linear", url: "https://mcp.linear.app/mcp", auth: "oauth", gives: "issues, projects, comments" },
  {
    name: "microsoft-learn",
    url: "https://learn.microsoft.com/api/mcp",
    auth: "none",
    gives: "Microsoft's documentation"
  },
  { name: "monday", url: "https://mcp.monday.com/mcp", auth: "oauth", gives: "boards, items, updates" },
  { name: "neon", url: "https://mcp.neon.tech/mcp", auth: "oauth", gives: "Postgres projects, branches, queries" },
  { name: "notion", url: "https://mcp.notion.com/mcp", auth: "oauth", gives: "pages, databases, comments" },
  { name: "paypal", url: "https://mcp.paypal.com/mcp", auth: "oauth", gives: "invoices, payments, disputes" },
  { name: "sentry", url: "https://mcp.sentry.dev/mcp", auth: "oauth", gives: "errors, issues, projects" },
  {
    name: "stripe",
    url: "https://mcp.stripe.com",
    auth: "oauth",
    gives: "customers, payments, invoices, documentation"
  },
  { name: "supabase", url: "https://mcp.supabase.com/mcp", auth: "oauth", gives: "databases, migrations, logs" },
  { name: "vercel", url: "https://mcp.vercel.com", auth: "oauth", gives: "deployments, projects, logs" }
]

/**
 * Finds a server by its name, however that is written.
 *
 * @category getters
 * @since 0.1.0
 */
export const find = (name: string): Server | undefined =>
  servers.find((one) => normaliseName(one.name) === normaliseName(name))
