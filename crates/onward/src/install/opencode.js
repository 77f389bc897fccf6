// Onward's plugin for opencode. Installed by `onward install opencode`, removed by `--uninstall`.
// It sends each hook event to `onward hook opencode` and executes the reply. If that fails,
// opencode continues as without the plugin. The events of a session are sent one at a time:
// opencode does not wait for its event handlers, and the end of a turn must not overtake its
// results.
import { spawn } from "node:child_process"

const program = "{program}"
const hookArguments = ["{arguments}"]

function runHook(event) {
  return new Promise((resolve) => {
    let stdout = ""
    const resolveEmpty = () => resolve({})
    try {
      const hook = spawn(program, hookArguments, { stdio: ["pipe", "pipe", "ignore"] })
      const timeout = setTimeout(() => {
        hook.kill()
        resolveEmpty()
      }, 10000)
      hook.on("error", resolveEmpty)
      hook.stdin.on("error", resolveEmpty)
      hook.stdout.on("data", (chunk) => (stdout += chunk))
      hook.on("close", () => {
        clearTimeout(timeout)
        try {
          resolve(stdout.trim() ? JSON.parse(stdout) : {})
        } catch {
          resolveEmpty()
        }
      })
      hook.stdin.end(JSON.stringify(event))
    } catch {
      resolveEmpty()
    }
  })
}

// The last queued event of each session.
const queues = new Map()

function send(event) {
  const previous = queues.get(event.sessionID) ?? Promise.resolve()
  const reply = previous.then(() => runHook(event))
  queues.set(event.sessionID, reply)
  return reply
}

export const Onward = async ({ client, directory }) => {
  // Text to add to the next result of a session.
  const pendingContext = new Map()
  // The call id of each open permission request.
  const permissions = new Map()
  // Sessions with an open turn.
  const busy = new Set()
  // Sessions that this process has reported. A resumed session is not created again.
  const reported = new Set()
  // The parent of each session of a subagent.
  const parents = new Map()

  const addContext = (sessionID, text) => {
    if (!text) return
    pendingContext.set(sessionID, [pendingContext.get(sessionID), text].filter(Boolean).join("\n"))
  }
  const showToast = async (message) => {
    try {
      await client.tui.showToast({ body: { title: "Onward", message, variant: "warning" } })
    } catch {
      // Running without a terminal UI.
    }
  }

  // An event of a session, with the parent of a subagent.
  const newEvent = (hook, sessionID, fields) => {
    const parentID = parents.get(sessionID)
    return { hook, sessionID, directory, ...(parentID && { parentID }), ...fields }
  }

  const reportSession = async (sessionID, parentID) => {
    if (parentID) parents.set(sessionID, parentID)
    if (reported.has(sessionID)) return
    reported.add(sessionID)
    const reply = await send(newEvent("session.created", sessionID))
    addContext(sessionID, reply.context)
  }

  const events = {
    "session.created": async ({ sessionID, info }) => {
      const id = sessionID ?? info?.id
      if (id) await reportSession(id, info?.parentID)
    },
    "session.compacted": async ({ sessionID }) => {
      if (!sessionID) return
      const reply = await send(newEvent("session.compacted", sessionID))
      addContext(sessionID, reply.context)
    },
    "session.idle": async ({ sessionID }) => {
      if (!sessionID) return
      busy.delete(sessionID)
      const reply = await send(newEvent("session.idle", sessionID))
      addContext(sessionID, reply.context)
    },
    "session.deleted": async ({ sessionID, info }) => {
      const id = sessionID ?? info?.id
      if (!id) return
      await send({ hook: "session.deleted", sessionID: id, directory })
      queues.delete(id)
      pendingContext.delete(id)
      busy.delete(id)
      reported.delete(id)
      parents.delete(id)
    },
    "permission.asked": async ({ id, sessionID, tool }) => {
      if (!sessionID || !tool?.callID) return
      permissions.set(id, tool.callID)
      await send({ hook: "permission.asked", sessionID, directory, callID: tool.callID })
    },
    "permission.replied": async ({ requestID, sessionID, reply }) => {
      const callID = permissions.get(requestID)
      permissions.delete(requestID)
      if (callID) await send({ hook: "permission.replied", sessionID, directory, callID, reply })
    },
    // opencode reports a failed tool only here. Failures after the end of the turn are skipped:
    // ending the turn cancelled those calls.
    "message.part.updated": async ({ part }) => {
      if (part?.type !== "tool" || part.state?.status !== "error") return
      const { sessionID, tool, callID, state } = part
      if (!busy.has(sessionID)) return
      const reply = await send(newEvent("message.part.updated", sessionID, {
        tool, callID, args: state.input, error: state.error,
      }))
      addContext(sessionID, reply.context)
      if (reply.warn) await showToast(reply.warn)
    },
  }

  return {
    event: async ({ event }) => {
      await events[event?.type]?.(event.properties ?? {})
    },
    "chat.message": async ({ sessionID }, output) => {
      busy.add(sessionID)
      await reportSession(sessionID)
      const prompt = output?.parts?.findLast((part) => part.type === "text")
      await send(newEvent("chat.message", sessionID, { prompt: prompt?.text }))
      const context = pendingContext.get(sessionID)
      if (!context || !prompt) return
      pendingContext.delete(sessionID)
      prompt.text = `${prompt.text}\n\n${context}`
    },
    "tool.execute.before": async (input, output) => {
      const { tool, sessionID, callID } = input
      const reply = await send(
        newEvent("tool.execute.before", sessionID, { tool, callID, args: output.args }),
      )
      if (reply.stop) {
        await showToast(reply.stop)
        await client.session.abort({ path: { id: sessionID } }).catch(() => {})
      }
      if (reply.refuse) throw new Error(reply.refuse)
    },
    "tool.execute.after": async (input, output) => {
      const { tool, sessionID, callID, args } = input
      // Tools of MCP servers return an array of parts, all other tools return text.
      const parts = Array.isArray(output?.content) ? output.content : undefined
      const reply = await send(newEvent("tool.execute.after", sessionID, {
        tool, callID, args, output: parts ?? output?.output, isError: output?.isError,
        metadata: output?.metadata,
      }))
      if (reply.warn) await showToast(reply.warn)
      addContext(sessionID, reply.context)
      const context = pendingContext.get(sessionID)
      if (!context || (!parts && typeof output?.output !== "string")) return
      pendingContext.delete(sessionID)
      if (parts) parts.push({ type: "text", text: context })
      else output.output = `${output.output}\n\n${context}`
    },
  }
}
