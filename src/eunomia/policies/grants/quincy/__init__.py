"""Quincy: where gangs could sit and what that costs, the least-cost flow, and the seats it means."""
