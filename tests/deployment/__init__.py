"""The deployment files: docker-compose.yml and what is mounted, built or named by it."""
